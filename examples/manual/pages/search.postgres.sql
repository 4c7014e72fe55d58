-- param: q text = ''

-- Words, "phrases", or, -not. The signs around a found word are none that a document has; the template makes elements of them.
-- name: found :many
select docs.folder, docs.slug, docs.title, docs.body, passages.heading,
  ts_headline('english', passages.body, websearch_to_tsquery('english', substr(:q, 1, 100)),
    'StartSel=' || chr(1) || ', StopSel=' || chr(2) || ', MaxFragments=1, MaxWords=30, MinWords=12') as piece
from passages join docs on docs.folder = passages.folder and docs.slug = passages.slug
where passages.words @@ websearch_to_tsquery('english', substr(:q, 1, 100))
order by ts_rank(passages.words, websearch_to_tsquery('english', substr(:q, 1, 100))) desc, docs.slug, passages.heading limit 30;
