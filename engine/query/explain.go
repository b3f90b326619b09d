package query

import (
	"fmt"
	"slices"
	"strconv"

	"fenec/engine/doc"
	"fenec/engine/query/syntax"
)

// explain compiles an explain: the get runs, and its steps are returned instead of its rows, each as a row
// {"step", "index", "tested", "rows", "note"}. The first step finds documents: "index" names what it went
// by (null for a scan), "tested" counts the documents it read, "rows" those that passed. Before it is a step
// "inner get" for each get of an in. Then come
// "group", or "aggregate" of all rows, and "having", "sort" if an order needed one, "page" if there is a
// limit or offset, "count", and "lookup" for each level. An aggregate read from an index has a step "ends" instead of
// the first. Last, a step
// "not used" for each index and each term of the condition that was not used, with the reason in
// "note".
func (c *compiler) explain(st *syntax.Get) error {
	g, err := c.getPlan(st)
	if err != nil {
		return err
	}
	c.plan.run = func(f *frame, s Reader) (Result, error) {
		start := len(f.out)
		answer, err := g.run(f, s)
		if err != nil {
			return Result{}, err
		}
		f.out, f.rows = append(answer.Body[:start], '['), 0
		g.steps(f, answer.Rows)
		return f.answer(), nil
	}
	return nil
}

// steps appends a row for each step of the run that has just ended.
func (g *getPlan) steps(f *frame, rows int) {
	w := &f.walk
	for _, in := range f.inner {
		f.step("inner get", in.index, in.tested, in.values, "of "+in.collection+", run once")
	}
	if f.group.ends {
		g.endSteps(f)
		g.groupSteps(f, rows)
		return
	}
	if g.search != nil {
		g.search.steps(f, rows)
		g.unindexedTerms(f)
		return
	}
	a := w.access
	matched, note := w.matched, a.note()
	if w.sink == nil {
		note = "counted without a look at the documents"
	}
	f.step(a.name(), a.indexName(), w.tested, matched, note)
	if w.sorts {
		note := ""
		if g.pick.limit != nil {
			note = "keeps no more rows than the page needs"
		}
		f.step("sort", "", -1, matched, note)
	}
	if g.pick.limit != nil || g.pick.offset != nil {
		f.step("page", "", -1, rows, "")
	}
	switch {
	case g.groups != nil:
		g.groupSteps(f, rows)
	case g.show == nil:
		f.step("count", "", -1, 1, "")
	}
	g.levelSteps(f)
	for i := range g.pick.paths {
		g.passedOver(f, &g.pick.paths[i])
	}
	for i := range g.pick.walked {
		g.passedOver(f, &g.pick.walked[i])
	}
	g.unindexedTerms(f)
	for _, k := range g.pick.keys {
		if why := unwalked(w.table.Schema(), k); w.sorts && why != "" {
			f.step("not used", "", -1, -1, "order by "+k.column.name+": "+why)
		}
	}
	if w.sorts && len(g.pick.keys) > 1 {
		f.step("not used", "", -1, -1, "an index gives the order of one key, and the order has more")
	}
}

// unindexedTerms appends the reason for each term for which no index can be used.
func (g *getPlan) unindexedTerms(f *frame) {
	for _, t := range g.pick.terms {
		if why := g.unindexed(f, t); why != "" {
			f.step("not used", "", -1, -1, why)
		}
	}
}

// endSteps appends a step for each index of which the first or last entry was read.
func (g *getPlan) endSteps(f *frame) {
	for i, a := range g.groups.aggregates {
		same := func(b aggregate) bool { return b.column != nil && b.column.name == a.column.name }
		if a.column != nil && !slices.ContainsFunc(g.groups.aggregates[:i], same) {
			f.step("ends", a.column.name+" "+a.index.String(), -1, -1, "the least and the greatest value are at its ends")
		}
	}
}

// groupSteps appends the steps on groups.
func (g *getPlan) groupSteps(f *frame, rows int) {
	p := g.groups
	if p.key != nil {
		f.step("group", "", -1, f.group.found, "by "+p.named)
	} else {
		f.step("aggregate", "", -1, 1, "")
	}
	if p.having != nil {
		f.step("having", "", -1, f.group.kept, "")
	}
	if len(p.order) > 0 {
		f.step("sort", "", -1, f.group.kept, "")
	}
	if p.limit != nil || p.offset != nil {
		f.step("page", "", -1, rows, "")
	}
}

// levelSteps appends a step for each lookup: "tested" counts the documents read, those of a required lookup
// twice if they are shown, "rows" those returned.
func (g *getPlan) levelSteps(f *frame) {
	for i, l := range g.levels {
		r := &f.levels[i]
		via := l.name + " id"
		if !l.child.id {
			via = l.name + "." + l.child.name + " " + l.index.String()
		}
		note := "asked " + count(r.asked, "time") + ", with " + l.parent.name
		if l.required {
			note += "; required"
		}
		f.step("lookup", via, r.tested, r.rows, note)
	}
}

// passedOver appends why an index was not used.
func (g *getPlan) passedOver(f *frame, a *access) {
	w := &f.walk
	if w.access.on != nil && w.access.on.name == a.on.name {
		return // it was used in another way
	}
	note := "it leads to " + count(a.reach(f, w.table), "document")
	if w.access.kind == byScan {
		note += fmt.Sprintf(" of %d; a scan is cheaper", w.table.Len())
	} else {
		note += fmt.Sprintf("; %s is cheaper", w.access.indexName())
	}
	f.step("not used", a.indexName(), -1, -1, note)
}

// unindexed returns why no index can be used for a term, or "" if one can.
func (g *getPlan) unindexed(f *frame, t term) string {
	p := t.probe
	if t.expr == nil {
		return ""
	}
	if p == nil {
		return fmt.Sprintf("%s: only a field compared with constants by = in < <= > >= reaches an index", describeTerm(t.expr))
	}
	if p.column.id {
		return ""
	}
	kind := indexOn(f.walk.table.Schema(), p.column.name)
	declared := indexOrder(f.walk.table.Schema(), p.column)
	switch {
	case kind == 0:
		return p.column.name + " has no index"
	case kind.Ordered() && p.column.collate != declared:
		return fmt.Sprintf("%s is ordered %s, the comparison of %s %s", kind, orderedBy(declared), p.column.name, orderedBy(p.column.collate))
	case !p.member && !p.ranged():
		return p.column.name + ": != is a scan"
	case !kind.Ordered() && !p.member && p.rel != equal:
		return fmt.Sprintf("%s: %s answers = and in only", p.column.name, kind)
	}
	return ""
}

// unwalked returns why no index gives the order of a key, or "" if one does.
func unwalked(s *doc.Schema, k orderKey) string {
	kind := indexOn(s, k.column.name)
	switch {
	case k.column.id:
		return ""
	case !kind.Ordered():
		return "it has no @sorted index"
	case k.collate != k.column.collate:
		return fmt.Sprintf("%s is ordered %s, the key %s", kind, orderedBy(k.column.collate), orderedBy(k.collate))
	}
	return ""
}

// describeTerm names a term by its operator and place.
func describeTerm(e syntax.Expr) string {
	pos := e.Position()
	what := "the condition"
	switch e := e.(type) {
	case *syntax.Logic:
		what = "or"
	case *syntax.Unary:
		if e.Op == syntax.Not {
			what = "not"
		}
	case *syntax.Binary:
		if text := opText[e.Op]; text != "" {
			what = text
		}
	}
	return fmt.Sprintf("%s at line %d column %d", what, pos.Line, pos.Column)
}

// name returns the step of an access path in an explain.
func (a *access) name() string {
	switch a.kind {
	case byScan:
		return "scan"
	case byOrder:
		return "walk"
	}
	return "find"
}

// indexName returns the name of the index of an access path, or "" for a scan.
func (a *access) indexName() string {
	switch {
	case a.kind == byScan:
		return ""
	case a.on.id:
		return "id"
	}
	return a.on.name + " " + a.index.String()
}

func (a *access) note() string {
	switch a.kind {
	case byID:
		return "a range of ids"
	case byOrder:
		return "in the order asked for"
	case byRange:
		return "a range of values"
	}
	return ""
}

// step appends one row; a negative number and an empty text are null.
func (f *frame) step(step, index string, tested, rows int, note string) {
	out := append(f.next(), `{"step":`...)
	out = appendText(out, step)
	out = appendText(append(out, `,"index":`...), index)
	out = appendCount(append(out, `,"tested":`...), tested)
	out = appendCount(append(out, `,"rows":`...), rows)
	out = appendText(append(out, `,"note":`...), note)
	f.out = append(out, '}')
}

func appendText(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return doc.AppendQuoted(dst, []byte(s))
}

func appendCount(dst []byte, n int) []byte {
	if n < 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(n), 10)
}
