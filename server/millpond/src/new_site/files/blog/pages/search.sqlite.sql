-- param: q text = ''

-- What is typed becomes a list of quoted words that all count, the last of them a prefix: "first" "sno" *. Nothing finds nothing.
-- name: posts :many
-- max-age: 60s
select p.slug, p.title, p.date, p.summary, substr(p.body, 1, 2000) as start from words join published p on p.slug = words.slug
where words match '"' || replace(trim(replace(substr(:q, 1, 100), '"', ' ')), ' ', '" "') || '" *'
order by p.date desc nulls last, p.slug limit 50;
