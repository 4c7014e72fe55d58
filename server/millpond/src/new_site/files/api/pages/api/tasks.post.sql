-- POST /api/tasks with title, note and due: 201, and the task
-- require: claims.user
-- param: title text
-- param: note text = ''
-- param: due text = null

-- name: task :one
insert into task (account_id, title, note, due)
select id, trim(:title), :note, :due from account where id = :claims.user returning id, title, note, done, due, made_at;

-- created: /api/tasks/:id
-- json: task
