-- name: notes :many
select id, title, at from note order by at desc, id desc limit 100;
