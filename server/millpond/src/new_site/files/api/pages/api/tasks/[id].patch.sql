-- PATCH /api/tasks/1 with what is to change
-- require: claims.user
-- param: id integer
-- param: title text = null
-- param: note text = null
-- param: due text = null
-- param: done integer in (0, 1) = null

-- name: task :one
update task set title = coalesce(trim(:title), title), note = coalesce(:note, note), due = coalesce(:due, due), done = coalesce(:done, done)
where id = :id and account_id = :claims.user returning id, title, note, done, due, made_at;

-- json: task
