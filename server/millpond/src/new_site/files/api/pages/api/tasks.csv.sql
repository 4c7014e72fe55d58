-- GET /api/tasks.csv: the same for a spreadsheet
-- require: claims.user
-- csv: spreadsheet

-- name: tasks :many
select id, title, done, due, made_at from task where account_id = :claims.user order by id;
