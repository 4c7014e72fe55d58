-- GET /api/tasks/1
-- require: claims.user
-- param: id integer

-- name: task :one
select id, title, note, done, due, made_at from task where id = :id and account_id = :claims.user;

-- json: task
