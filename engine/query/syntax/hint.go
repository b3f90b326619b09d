package syntax

// hints map words of other languages to their equivalent in FenecQL.
var hints = [...]struct{ word, hint string }{
	{"delete", "documents are deleted by del"},
	{"remove", "documents are deleted by del"},
	{"update", "documents are changed by set"},
	{"upsert", "put writes a document whether its id is taken or not"},
	{"find", "documents are read by get"},
	{"show", "collections lists them, describe shows one"},
	{"table", "tables are collections here"},
	{"values", "documents are written {field: value}"},
	{"like", "a ~ 'x' asks whether a text contains another, like(a, 'x*') whether it begins with it"},
	{"ilike", "a ~ 'x' asks whether a text contains another, like(a, 'x*') whether it begins with it"},
	{"contains", "lists are asked with has, texts with ~"},
	{"between", "a range is written a >= 1 and a <= 2"},
	{"exists", "whether a field holds a value is asked with is not null"},
	{"skip", "rows are skipped by offset"},
	{"nulls", "null comes first ascending and last descending"},
}

// hint returns the hint for the token at which an error occurred, with its separator from the error.
func hint(t *token) string {
	for i := range hints {
		if t.is(hints[i].word) {
			return "; " + hints[i].hint
		}
	}
	return ""
}
