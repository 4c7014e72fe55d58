-- name: clock :one?
select at, started from clock where id = 1;
