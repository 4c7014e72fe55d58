-- GET /api/tasks?done=0&q=milk&page=2
-- require: claims.user
-- param: done integer in (0, 1) = null
-- param: q text = ''
-- param: page integer from 1 = 1
-- param: size integer in (20, 50, 100) = 20
-- order: sort: made = "id", -made = "id desc", due = "due nulls last, id", title = "lower(title), id"

-- name: total :one
select count(*) as tasks from task
where account_id = :claims.user and (done = :done or :done is null) and lower(title) like '%' || lower(:q) || '%';

-- name: tasks :many
select id, title, note, done, due, made_at from task
where account_id = :claims.user and (done = :done or :done is null) and lower(title) like '%' || lower(:q) || '%'
order by :sort limit :size offset (:page - 1) * :size;
