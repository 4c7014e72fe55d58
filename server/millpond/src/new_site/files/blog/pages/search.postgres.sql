-- param: q text = ''

-- Words, "phrases", or, -not. Nothing finds nothing.
-- name: posts :many
select slug, title, date, summary from posts
where words @@ websearch_to_tsquery('simple', substr(:q, 1, 100)) and draft is not true
order by date desc nulls last, slug limit 50;
