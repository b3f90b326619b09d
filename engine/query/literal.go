package query

import (
	"strings"

	"fenec/engine/doc"
	"fenec/engine/query/syntax"
)

// list compiles `[a, b]`. Its value is built in the frame's arena.
func (c *compiler) list(e *syntax.ListExpr) (node, error) {
	items := make([]node, len(e.Items))
	constant, fixed := true, true
	for i, item := range e.Items {
		var err error
		if items[i], err = c.expr(item); err != nil {
			return node{}, err
		}
		constant = constant && items[i].constant
		fixed = fixed && items[i].fixed
	}
	n := node{kind: doc.List, constant: constant, fixed: fixed, list: items, pos: e.Pos}
	n.eval = func(f *frame) doc.Value {
		// The items may add bytes to the arena, so the list is built after them.
		values := make([]doc.Value, len(items))
		for i, item := range items {
			values[i] = item.eval(f)
		}
		var at int
		f.arena, at = doc.OpenList(f.arena)
		for _, v := range values {
			f.element(v, e.Pos)
		}
		return f.closed(at, e.Pos)
	}
	return n, nil
}

// object compiles `{k: v}`.
func (c *compiler) object(e *syntax.ObjectExpr) (node, error) {
	keys := make([]string, len(e.Items))
	values := make([]node, len(e.Items))
	constant, fixed := true, true
	for i, item := range e.Items {
		var err error
		if values[i], err = c.expr(item.Value); err != nil {
			return node{}, err
		}
		keys[i] = strings.Join(item.Key.Parts, ".")
		constant = constant && values[i].constant
		fixed = fixed && values[i].fixed
	}
	n := node{kind: doc.Object, constant: constant, fixed: fixed, pos: e.Pos}
	n.eval = func(f *frame) doc.Value {
		made := make([]doc.Value, len(values))
		for i, v := range values {
			made[i] = v.eval(f)
		}
		var at int
		f.arena, at = doc.OpenObject(f.arena)
		for i, v := range made {
			f.arena = doc.AppendKey(f.arena, keys[i])
			f.element(v, e.Pos)
		}
		return f.closed(at, e.Pos)
	}
	return n, nil
}

// element appends v to the arena as json holds it: timestamps and bytes as text.
func (f *frame) element(v doc.Value, pos syntax.Pos) {
	arena, err := doc.Type{Kind: doc.TypeJSON}.Append(f.arena, v, "the value")
	if err != nil {
		f.setErr(pos, err)
		arena = doc.Append(f.arena, doc.Value{})
	}
	f.arena = arena
	f.arenaFits()
}

// closed ends the list or object that was opened in the arena.
func (f *frame) closed(at int, pos syntax.Pos) doc.Value {
	arena, err := doc.Close(f.arena, at)
	if err != nil {
		return f.setErr(pos, err)
	}
	f.arena = arena
	return doc.Raw(arena[at:len(arena):len(arena)]).Value()
}
