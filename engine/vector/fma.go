//go:build !arm64

package vector

// fma returns x*y + z rounded once.
func fma(x, y, z float32) float32 { return fmaGeneric(x, y, z) }
