"""The cursor over the tokens that the parsers share: looking, taking, failing at a place, going on after a fault."""

from __future__ import annotations

from kql_duckdb.errors import KqlError
from kql_duckdb.syntax.lexer import Source, Token, string_value

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class Fault(Exception):
    """The text is no KQL from here on. Caught where the parser can go on; a person sees the `KqlError` in it."""

    def __init__(self, error: KqlError) -> None:
        super().__init__(str(error))
        self.error = error


class Stream:
    """Tokens with a position. Every method that reads moves past what it read."""

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self.tokens = self.source.tokens
        self.position = 0
        self.errors: list[KqlError] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.position + distance, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def fault(self, message: str, at: int | None = None, code: str = "SYN0002") -> Fault:
        place = self.source.place(self.token.start if at is None else at)
        return Fault(KqlError(message, code, place.line, place.column))

    def unexpected(self, wanted: str) -> Fault:
        token = self.token
        found = "the end of the query" if token.kind == "end" else f"'{token.text[:40]}'"
        if token.kind == "bad" and token.text in "\"'`":
            return self.fault("A text is not closed: its quotation mark has no partner on this line.")
        return self.fault(f"Expected {wanted} and found {found}.")

    # looking
    def is_mark(self, text: str, distance: int = 0) -> bool:
        token = self.peek(distance) if distance else self.tokens[self.position]
        return token.text == text and token.kind == "mark"

    def is_word(self, *words: str) -> bool:
        token = self.tokens[self.position]
        return token.kind == "name" and token.text in words

    # taking
    def take_mark(self, text: str) -> bool:
        token = self.tokens[self.position]
        if token.text == text and token.kind == "mark":
            self.position += 1
            return True
        return False

    def take_word(self, *words: str) -> bool:
        if self.is_word(*words):
            self.position += 1
            return True
        return False

    def need_mark(self, text: str) -> Token:
        if not self.is_mark(text):
            raise self.unexpected(f"'{text}'")
        return self.advance()

    def need_word(self, word: str) -> Token:
        if not self.is_word(word):
            raise self.unexpected(f"'{word}'")
        return self.advance()

    def is_name(self) -> bool:
        token = self.tokens[self.position]
        if token.kind == "name":
            return True
        return token.text == "[" and self.peek(1).kind == "string" and self.is_mark("]", 2)

    def name(self, wanted: str = "a name") -> str:
        """A name as such, or a text in square brackets."""
        token = self.tokens[self.position]
        if token.kind == "name":
            self.position += 1
            return token.text
        if not self.is_name():
            raise self.unexpected(wanted)
        self.advance()
        text = string_value(self.advance().text)
        self.advance()
        return text

    def matching(self, distance: int = 0) -> int:
        """How far the partner of the bracket at `distance` is; the end of the text if it has none."""
        depth = 0
        position = self.position + distance
        while position < len(self.tokens) - 1:
            text = self.tokens[position].text
            if self.tokens[position].kind == "mark":
                if text in _OPENING:
                    depth += 1
                elif text in _CLOSING:
                    depth -= 1
                    if depth == 0:
                        break
            position += 1
        return position - self.position

    def skip(self, *stops: str) -> None:
        """Move to the next mark of `stops` outside brackets opened from here, or to a bracket that closes an outer."""
        depth = 0
        while self.token.kind != "end":
            token = self.token
            if token.kind == "mark":
                if depth == 0 and (token.text in stops or token.text in _CLOSING):
                    return
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
            self.position += 1

    def text_since(self, start: int) -> str:
        """What was read since the token at index `start`, without the blanks around it."""
        if start >= self.position:
            return ""
        return self.source.text[self.tokens[start].start : self.tokens[self.position - 1].end]
