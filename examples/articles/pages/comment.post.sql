-- param: id integer
-- param: who text = ''
-- param: body text

-- No such article: 404, and nothing is written.
-- name: article :one
select id from article where id = :id;

-- A browser ends the lines of a text area with CR LF; blank ends do not count towards the length.
-- name: comment :exec
-- Who is signed in signs with the account's name, whatever the form says.
insert into comment (article_id, account_id, who, body)
values (
  :id,
  (select id from account where id = :claims.user and session_epoch = :claims.epoch),
  coalesce((select name from account where id = :claims.user and session_epoch = :claims.epoch), trim(:who)),
  trim(replace(:body, char(13), ''), char(9, 10, 32))
);

-- redirect: /read?id=:id#comments
