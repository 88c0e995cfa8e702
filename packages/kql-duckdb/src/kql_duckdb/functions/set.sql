-- The elements of a set in the order in which they first appear. DuckDB finds the set, in no order: {found}. The first
-- rows, {head}, say where each element first stands: sorted, the first of each run and back by its place. A few that
-- the first rows lack come behind, sorted; of more than 500 all are sorted. {size} is how many are asked for.
list_transform([struct_pack(found := {found}, head := list_transform([{head}], lambda _head:
    list_transform([list_sort(list_transform(_head, lambda _v, _i: struct_pack(k := _v, i := _i)))], lambda _sorted:
    list_transform(list_sort(list_transform(list_filter(_sorted,
    lambda _p, _i: _i = 1 OR _sorted[_i - 1].k IS DISTINCT FROM _p.k), lambda _p: _p.i)), lambda _i: _head[_i]))[1])[1]
    )], lambda _s: CASE WHEN len(_s.head) >= least(len(_s.found), {size}) THEN _s.head
    WHEN len(_s.found) > 500 THEN list_sort(_s.found)
    ELSE list_concat(_s.head, list_sort(list_filter(_s.found, lambda _v: NOT list_contains(_s.head, _v)))) END)[1]
