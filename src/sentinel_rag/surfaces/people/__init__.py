"""The people who may sign in: their accounts, passwords, sign-ins and tokens, and each one's key at the Interceptor.

Shared by the surfaces: `sentinel users` manages accounts, `surfaces.web` signs people in. What a person may do is
decided by the Interceptor, by the scopes of the person's own key; roles are the names of those scopes.
"""

from sentinel_rag.surfaces.people.accounts import OWNER, Account, Role, SignIn, checked_groups, scopes_of
from sentinel_rag.surfaces.people.owner_links import OwnerLinks, owner_link
from sentinel_rag.surfaces.people.passwords import Passwords, check_new_password
from sentinel_rag.surfaces.people.sign_ins import Opened
from sentinel_rag.surfaces.people.store import AccountDisabled, PeopleStore

__all__ = [
    "OWNER",
    "Account",
    "AccountDisabled",
    "Opened",
    "OwnerLinks",
    "Passwords",
    "PeopleStore",
    "Role",
    "SignIn",
    "check_new_password",
    "checked_groups",
    "owner_link",
    "scopes_of",
]
