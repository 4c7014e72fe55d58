-- GET /api/me
-- require: claims.user

-- name: account :one
select id, name from account where id = :claims.user;

-- name: tasks :one
select count(*) as total, coalesce(sum(done), 0) as done from task where account_id = :claims.user;
