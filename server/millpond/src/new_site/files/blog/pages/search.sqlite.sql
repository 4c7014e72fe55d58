-- param: q text = ''

-- What is typed becomes a list of quoted words that all count, the last of them a prefix: "first" "sno" *. Nothing finds nothing.
-- name: posts :many
select p.slug, p.title, p.date, p.summary from words join posts p on p.slug = words.slug
where words match '"' || replace(trim(replace(substr(:q, 1, 100), '"', ' ')), ' ', '" "') || '" *' and p.draft is not true
order by p.date desc nulls last, p.slug limit 50;
