-- DELETE /api/tasks/1
-- require: claims.user
-- param: id integer

-- name: task :one
delete from task where id = :id and account_id = :claims.user returning id, title;

-- json: task
