"""The people who may sign in: their accounts, passwords, sign-ins and tokens, and each one's key at the gateway.

Shared by the surfaces: `sentinel users` manages accounts, `surfaces.web` signs people in. What a person may do is
decided by the gateway, by the scopes of the person's own key; roles are the names of those scopes.
"""

from sentinel_rag.surfaces.users.accounts import OWNER, Account, Role, SignIn, checked_groups, scopes_of
from sentinel_rag.surfaces.users.owner_links import OwnerLinks, owner_link
from sentinel_rag.surfaces.users.passwords import Passwords, check_new_password
from sentinel_rag.surfaces.users.sign_ins import Opened
from sentinel_rag.surfaces.users.store import AccountDisabled, UserStore

__all__ = [
    "OWNER",
    "Account",
    "AccountDisabled",
    "Opened",
    "OwnerLinks",
    "Passwords",
    "Role",
    "SignIn",
    "UserStore",
    "check_new_password",
    "checked_groups",
    "owner_link",
    "scopes_of",
]
