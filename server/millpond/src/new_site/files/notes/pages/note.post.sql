-- What the form on the front page sends.
-- param: title text
-- param: body text

-- name: note :one
insert into note (title, body) values (trim(:title), replace(:body, char(13), '')) returning id as note_id;

-- redirect: /notes/:note_id
