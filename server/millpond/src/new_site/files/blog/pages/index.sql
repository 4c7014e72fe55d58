-- param: page integer from 1 = 1

-- name: total :one
select (count(*) + 9) / 10 as pages from posts where draft is not true
having (count(*) + 9) / 10 >= :page or :page = 1;

-- name: posts :many
select slug, title, date, summary from posts where draft is not true
order by date desc nulls last, slug limit 10 offset (:page - 1) * 10;
