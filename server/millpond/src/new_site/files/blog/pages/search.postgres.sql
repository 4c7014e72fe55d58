-- param: q text = ''

-- Words, "phrases", or, -not. Nothing finds nothing.
-- name: posts :many
-- max-age: 60s
select p.slug, p.title, p.date, p.summary, substr(p.body, 1, 2000) as start from posts found join published p on p.slug = found.slug
where found.words @@ websearch_to_tsquery('simple', substr(:q, 1, 100))
order by p.date desc nulls last, p.slug limit 50;
