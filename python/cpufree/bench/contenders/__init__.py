"""Built-in contenders of conjugate gradients, and who else can be measured."""
