package syntax

// innerGet reads `(get C select item ...)` or `(select item from C ...)`, a level of the expression around it.
func (p *parser) innerGet() (Expr, int, error) {
	out := &InnerGet{Pos: p.tok.pos}
	if err := p.enter(0); err != nil {
		return nil, 0, err
	}
	around := *p // state that the inner statement replaces, restored after it
	p.deepest, p.having = p.depth, false
	p.advance()
	at := p.tok.pos
	var err error
	if p.take("get") {
		out.Get, err = p.get()
	} else {
		p.advance()
		out.Get, err = p.selectFrom()
	}
	if err != nil {
		return nil, 0, err
	}
	if out.Get.Count || len(out.Get.Select) != 1 {
		return nil, 0, p.invalid(at, "the inner get of in selects one item, the value to be looked for: (get %s select ...)", shorten(out.Get.Collection.Text))
	}
	if out.Get.Require != nil {
		return nil, 0, p.invalid(out.Get.Require.Position(), "the inner get of in takes no require, which is for a statement")
	}
	if len(out.Get.Lookups) > 0 {
		return nil, 0, p.invalid(out.Get.Lookups[0].Collection.Pos, "the inner get of in answers values and takes no lookup")
	}
	if err := p.want(')', p.rest.wanted(")")); err != nil {
		return nil, 0, err
	}
	height := p.deepest - p.depth
	p.rest, p.having, p.deepest = around.rest, around.having, max(around.deepest, p.deepest)
	p.leave()
	return out, height + 1, nil
}
