"""Memory: what training needs by arithmetic, and what it holds, counted on tensors."""
