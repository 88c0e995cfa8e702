"""Models that answer: the port, its adapter for the OpenAI wire, retries, tiers and what an answer costs.

The loop above imports from here. Nothing here runs a tool, reads a setting or imports a provider's library before the
first request.
"""

from sentinel_rag.agent.models.endpoints import (
    Admission,
    ApiKey,
    ModelEndpoint,
    NoKey,
    TokenAdmission,
    azure_endpoint,
    compatible_endpoint,
)
from sentinel_rag.agent.models.failures import (
    ContextOverflowError,
    FailureKind,
    ModelError,
    ModelTimedOutError,
    Overflowing,
    PromptFilteredError,
    RequestRefusedError,
)
from sentinel_rag.agent.models.messages import (
    AssistantMessage,
    CallProblem,
    ModelMessage,
    ModelToolCall,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.models.port import (
    NO_DEADLINE,
    RESPONSE_TOKENS,
    ChatModel,
    Finished,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ModelStream,
    RetryScheduled,
    TextDelta,
    ToolCallStarted,
    ToolChoice,
    complete,
)
from sentinel_rag.agent.models.retrying import RetryBudget, RetryingModel, RetryPolicy
from sentinel_rag.agent.models.small_profile import SMALL_CONTEXT_TOKENS, small_profile
from sentinel_rag.agent.models.tiers import (
    QuestionFeatures,
    Tier,
    TierChoice,
    TierHistory,
    TierReason,
    choose_tier,
    features_of,
)
from sentinel_rag.agent.models.usage import ModelUsage, Price, TokenCounts

__all__ = [
    "NO_DEADLINE",
    "RESPONSE_TOKENS",
    "SMALL_CONTEXT_TOKENS",
    "Admission",
    "ApiKey",
    "AssistantMessage",
    "CallProblem",
    "ChatModel",
    "ContextOverflowError",
    "FailureKind",
    "FinishReason",
    "Finished",
    "ModelEndpoint",
    "ModelError",
    "ModelEvent",
    "ModelMessage",
    "ModelRequest",
    "ModelStream",
    "ModelTimedOutError",
    "ModelToolCall",
    "ModelUsage",
    "NoKey",
    "OpenAIWireModel",
    "Overflowing",
    "Price",
    "PromptFilteredError",
    "QuestionFeatures",
    "RequestRefusedError",
    "RetryBudget",
    "RetryPolicy",
    "RetryScheduled",
    "RetryingModel",
    "SystemMessage",
    "TextDelta",
    "Tier",
    "TierChoice",
    "TierHistory",
    "TierReason",
    "TimeLimits",
    "TokenAdmission",
    "TokenCounts",
    "ToolCallStarted",
    "ToolChoice",
    "ToolResultMessage",
    "UserMessage",
    "azure_endpoint",
    "choose_tier",
    "compatible_endpoint",
    "complete",
    "features_of",
    "small_profile",
]
