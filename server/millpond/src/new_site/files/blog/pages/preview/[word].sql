-- A post with a line such as `preview: lantern-and-snow` is shown here before it is published, to those who are given the address.
-- name: post :one
select slug, title, date, body from posts where preview = :word;
