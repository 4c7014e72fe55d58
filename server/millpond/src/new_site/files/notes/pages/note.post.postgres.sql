-- What the form on the front page sends, for a site on PostgreSQL.
-- param: title text
-- param: body text

-- name: note :one
insert into note (title, body) values (trim(:title), replace(:body, chr(13), '')) returning id as note_id;

-- redirect: /notes/:note_id
