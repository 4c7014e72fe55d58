-- param: id integer
-- param: who text
-- param: body text

-- No such article: 404, and nothing is written.
-- name: article :one
select id from article where id = :id;

-- A browser ends the lines of a text area with CR LF; blank ends do not count towards the length.
-- name: comment :exec
insert into comment (article_id, who, body)
values (:id, btrim(:who), btrim(replace(:body, chr(13), ''), E'\t\n '));

-- redirect: /read?id=:id#comments
