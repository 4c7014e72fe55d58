-- name: posts :many
-- max-age: 60s
select slug, title, date, summary, body from published where date is not null order by date desc, slug limit 20;
