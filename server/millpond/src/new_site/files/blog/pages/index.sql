-- param: page integer from 1 = 1

-- A page behind the last one is not there.
-- name: total :one
-- max-age: 60s
select (count(*) + 9) / 10 as pages from published having :page = 1 or (:page - 1) * 10 < count(*);

-- name: posts :many
-- max-age: 60s
select slug, title, date, summary, substr(body, 1, 2000) as start from published
order by date desc nulls last, slug limit 10 offset (:page - 1) * 10;
