"""The vault: card numbers and private keys are stored sealed,
and found again by keyed fingerprints.
"""

from paydesk.adapters.vault.vault import Sealed, Vault, VaultError, generate_key_setting, generate_secret

__all__ = ["Sealed", "Vault", "VaultError", "generate_key_setting", "generate_secret"]
