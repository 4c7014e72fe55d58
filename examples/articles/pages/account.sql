-- require: claims.user else /login

-- A session that was ended elsewhere finds no account.
-- name: account :one
select id, name, opened_at from account where id = :claims.user and session_epoch = :claims.epoch;

-- name: comments :many
select c.id, c.body, c.at, a.id as article_id, a.title
from comment c join article a on a.id = c.article_id
where c.account_id = :claims.user order by c.at desc, c.id desc limit 100;
