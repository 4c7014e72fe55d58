-- param: q text = ''

-- Words, "phrases", or, -not. The signs around a found word are none that a document has; the template makes elements of them.
-- name: found :many
select folder, slug, title,
  ts_headline('english', body, websearch_to_tsquery('english', substr(:q, 1, 100)),
    'StartSel=' || chr(1) || ', StopSel=' || chr(2) || ', MaxFragments=1, MaxWords=30, MinWords=12') as piece
from docs
where words @@ websearch_to_tsquery('english', substr(:q, 1, 100))
order by ts_rank(words, websearch_to_tsquery('english', substr(:q, 1, 100))) desc, slug limit 30;
