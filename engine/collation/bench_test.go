package collation

import (
	"testing"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

func BenchmarkKey(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": "James Anderson", "accents": "François Désiré", "cyrillic": "Дмитрий Иванов", "han": "王小明先生",
		"thai": "เกรียงไกร", "decomposed": "Franc\u0327ois",
	} {
		b.Run(name, func(b *testing.B) {
			key, text := make([]byte, 0, 256), []byte(text)
			for b.Loop() {
				key = Root.AppendKey(key[:0], text)
			}
		})
		b.Run(name+" by the library", func(b *testing.B) {
			c, text := collate.New(language.Und), []byte(text)
			var buffer collate.Buffer
			for b.Loop() {
				buffer.Reset()
				c.Key(&buffer, text)
			}
		})
	}
}
