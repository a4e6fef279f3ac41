"""Who gets which samples and tokens, and what makes the average of gradients the right one."""
