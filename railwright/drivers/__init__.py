"""Pure decisions on drivers: is the next kernel complete, what may be reloaded, do versions fit."""
