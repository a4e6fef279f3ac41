"""The ledger of claims, its key terms and its references."""
