-- POST /api/tasks/1/delete
-- require: claims.user
-- param: id integer

-- name: task :one
delete from task where id = :id and account_id = :claims.user returning id as task_id;

-- redirect: /api/tasks
