-- POST /api/tasks with title, note and due
-- require: claims.user
-- param: title text
-- param: note text = ''
-- param: due text = null

-- name: task :one
insert into task (account_id, title, note, due)
select id, trim(:title), :note, :due from account where id = :claims.user returning id as task_id;

-- redirect: /api/tasks/:task_id
