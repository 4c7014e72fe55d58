-- A post or a page with a line such as `preview: lantern-and-snow` is shown here before it is published, to those who are given
-- the address.
-- name: post :one
select slug, title, date, body from posts where preview = :word
union all
select slug, title, null, body from pages where preview = :word
order by date, slug limit 1;
