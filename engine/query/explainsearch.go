package query

import (
	"fmt"
	"strconv"

	"fenec/engine/doc"
)

// steps appends a row for each step of a search that has just ended: "near", of which "tested" counts the documents
// read, "match", "rerank", "fuse", "sort" and "page", and "not used" for indexes that were not used.
func (s *searchPlan) steps(f *frame, rows int) {
	r := &f.search
	if r.match.ran {
		f.step("match", s.match.indexName(), r.match.filter.tested, r.match.found, r.match.filter.note())
	}
	if s.near != nil && r.near.way != 0 {
		s.near.step(f)
	}
	if s.rerank != nil {
		f.step("rerank", "", r.match.found, r.found, "by the "+s.rerank.scored()+" of "+s.rerank.column.name)
	}
	if s.fuse != nil {
		f.step("fuse", "", -1, r.fuse.found, "")
	}
	if r.sorts {
		f.step("sort", "", -1, r.found, "")
	}
	if s.pick.limit != nil || s.pick.offset != nil {
		f.step("page", "", -1, rows, "")
	}
	if s.near != nil && r.near.way != 0 {
		s.near.notUsed(f)
	}
	for i := range s.pick.paths {
		s.passedOver(f, &s.pick.paths[i])
	}
}

// indexName returns the names of the indexes that an inner get used.
func (s *searchPlan) indexName(f *frame) string {
	switch {
	case s.fuse != nil:
		return s.match.indexName() + ", " + s.near.indexName(f)
	case s.near != nil:
		return s.near.indexName(f)
	}
	return s.match.indexName()
}

func (m *matchPlan) indexName() string { return m.column.name + " " + m.index.String() }

// indexName returns the name of the index that a near used, or "" for a scan.
func (n *nearPlan) indexName(f *frame) string {
	if r := &f.search.near; r.access != nil {
		return r.access.indexName()
	}
	return n.column.name + " " + n.index.String()
}

// scored returns the name of the score of a field's rows.
func (s *scoring) scored() string {
	if s.sparse {
		return "dot product"
	}
	return s.metric.String()
}

// step appends the row of a near.
func (n *nearPlan) step(f *frame) {
	r := &f.search.near
	switch r.way {
	case byGraph:
		note := "a walk with ef " + strconv.Itoa(r.ef)
		if more := r.filter.note(); more != "" {
			note += ", " + more
		}
		f.step("near", n.indexName(f), r.counted+r.filter.tested, r.hits, note)
	case byMembers:
		f.step("near", n.indexName(f), r.counted+r.filter.tested, r.hits, r.filter.note()+", "+count(r.measured, "vector")+" measured")
	case byInverted:
		f.step("near", n.indexName(f), r.filter.tested, r.hits, r.filter.note())
	default:
		f.step("near", n.indexName(f), r.tested, r.hits, "measured exactly: "+count(r.measured, "document"))
	}
}

// notUsed appends why a near did not use an index on its field.
func (n *nearPlan) notUsed(f *frame) {
	r := &f.search.near
	on := n.column.name + " " + n.index.String()
	switch r.way {
	case byAsking:
		if n.index.Kind == 0 {
			on = ""
		}
		f.step("not used", on, -1, -1, "the statement says exact")
	case byMeasuring:
		wanted := doc.IndexHNSW
		if n.sparse {
			wanted = doc.IndexInverted
		}
		f.step("not used", "", -1, -1, fmt.Sprintf("%s has no %s index", n.column.name, wanted))
	case byFew:
		f.step("not used", on, -1, -1, fmt.Sprintf("the condition leaves no more documents than the %d a walk of it may measure", r.most))
	case byWide:
		f.step("not used", on, -1, -1, fmt.Sprintf("for so few documents as the condition leaves a walk of it would want ef %d", r.ef))
	case byShort:
		f.step("not used", on, -1, -1, fmt.Sprintf("of %s a walk of it came to, %d passed the condition", count(r.filter.asked, "document"), r.filter.passed))
	}
}

// note describes how the documents that an index returns were filtered.
func (r *filterRun) note() string {
	switch {
	case r.access != nil:
		return fmt.Sprintf("among the documents of %s", r.access.indexName())
	case r.test != nil:
		return "each document it comes to tested"
	}
	return ""
}

// passedOver appends why an index on a condition was not used.
func (s *searchPlan) passedOver(f *frame, a *access) {
	near, match := &f.search.near, &f.search.match
	for _, used := range [...]*access{near.access, near.filter.access, match.filter.access} {
		if used != nil && used.on != nil && used.on.name == a.on.name {
			return
		}
	}
	note := "it leads to " + count(a.reach(f, f.walk.table), "document")
	switch {
	case near.access != nil:
		note += "; " + near.access.called() + " is cheaper"
	default:
		note += "; to test those that are come to is cheaper"
	}
	f.step("not used", a.indexName(), -1, -1, note)
}

// called returns the name of an access path in messages.
func (a *access) called() string {
	if a.kind == byScan {
		return "a scan"
	}
	return a.indexName()
}
