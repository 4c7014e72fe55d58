-- The genres, for the menu of every page, the filters of lists and the editor's form.
-- name: genres :many
select id, name, hue from genre order by name;
