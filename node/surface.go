package node

import (
	"strconv"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/http1"
	"fenec/node/rest"
)

// root is GET /: the version and the names of the collections.
func (c *call) root() http1.Answer {
	headers := c.headNow()
	all, err := c.tenant.DB.Collections(c.scope)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	body := append(c.request.Scratch(), `{"fenec":`...)
	body = doc.AppendQuoted(body, []byte(c.node.config.Version))
	body = append(body, `,"collections":[`...)
	for i, info := range all {
		if i > 0 {
			body = append(body, ',')
		}
		body = doc.AppendQuoted(body, []byte(info.Schema.Name))
	}
	return http1.Answer{Status: 200, Headers: headers, Body: append(body, "]}"...)}
}

// collections is GET /collections: the schemas with their counts of documents.
func (c *call) collections() http1.Answer {
	headers := c.headNow()
	all, err := c.tenant.DB.Collections(c.scope)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	return http1.Answer{Status: 200, Headers: headers, Body: appendSchemas(c.request.Scratch(), all, true)}
}

// schema is GET /_schema: the schemas, or with as=fenecql the statements that create them, one a line.
func (c *call) schema() http1.Answer {
	headers := c.headNow()
	all, err := c.tenant.DB.Collections(c.scope)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	switch string(c.request.Query) {
	case "", "as=json":
		return http1.Answer{Status: 200, Headers: headers, Body: appendSchemas(c.request.Scratch(), all, false)}
	case "as=fenecql":
		return http1.Answer{Status: 200, Headers: withType(headers, plainText), Body: appendStatements(c.request.Scratch(), all)}
	}
	return c.node.answerError(c.request, fail.New(fail.Invalid, "expected as=json or as=fenecql, got %s", rest.Quoted(c.request.Query)))
}

var plainText = []http1.Header{{Name: []byte("Content-Type"), Value: []byte("text/plain; charset=utf-8")}}

// withType returns headers of positionHeaders or http1.JSON with another content type, the first of as.
func withType(head, as []http1.Header) []http1.Header {
	return append(as[:1:1], head[1:]...)
}

func appendSchemas(dst []byte, all []engine.CollectionInfo, counts bool) []byte {
	dst = append(dst, '[')
	for i, info := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendSchema(dst, info, counts)
	}
	return append(dst, ']')
}

func appendSchema(dst []byte, info engine.CollectionInfo, counts bool) []byte {
	dst = append(dst, `{"name":`...)
	dst = doc.AppendQuoted(dst, []byte(info.Schema.Name))
	dst = append(dst, `,"fields":[`...)
	for i, f := range info.Schema.Fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = doc.AppendQuoted(dst, []byte(f.Name))
		dst = append(dst, `,"type":`...)
		dst = doc.AppendQuoted(dst, []byte(f.Type.String()))
		dst = append(dst, `,"required":`...)
		dst = strconv.AppendBool(dst, f.Required)
		dst = appendDeclared(append(dst, `,"collate":`...), f.Collate.String())
		dst = appendDeclared(append(dst, `,"index":`...), f.Index.String())
		dst = append(dst, '}')
	}
	dst = append(dst, `],"paths":[`...)
	for i, p := range info.Schema.Paths {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"path":`...)
		dst = doc.AppendQuoted(dst, []byte(p.Path))
		dst = appendDeclared(append(dst, `,"index":`...), p.Index.String())
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	if counts {
		dst = append(dst, `,"documents":`...)
		dst = strconv.AppendInt(dst, int64(info.Documents), 10)
	}
	return append(dst, '}')
}

// appendDeclared appends a collation or index as a statement names it, or null if there is none.
func appendDeclared(dst []byte, word string) []byte {
	if word == "" {
		return append(dst, "null"...)
	}
	return doc.AppendQuoted(dst, []byte(word))
}

func appendStatements(dst []byte, all []engine.CollectionInfo) []byte {
	for _, info := range all {
		s := info.Schema
		dst = append(append(append(dst, "create collection "...), s.Name...), " ("...)
		for i, f := range s.Fields {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(append(append(dst, f.Name...), ' '), f.Type.String()...)
			if f.Required {
				dst = append(dst, " required"...)
			}
			if order := f.Collate.String(); order != "" {
				dst = append(append(dst, " collate "...), order...)
			}
			if f.Index.Kind != 0 {
				dst = append(append(dst, ' '), f.Index.String()...)
			}
		}
		dst = append(dst, ");\n"...)
		for _, p := range s.Paths {
			dst = append(append(append(dst, "create index on "...), s.Name...), " ("...)
			dst = append(append(append(dst, p.Path...), ") "...), p.Index.String()...)
			dst = append(dst, ";\n"...)
		}
	}
	return dst
}
