package vector

// fma returns x*y + z rounded once: the compiler makes it one instruction, which a test checks.
func fma(x, y, z float32) float32 { return x*y + z }
