-- What a search looks in: the names of artists, albums and tracks. The triggers keep each index as its table is.

create virtual table artist_words using fts5 (name, content = 'artist', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');
insert into artist_words (artist_words) values ('rebuild');
create trigger artist_words_insert after insert on artist begin
  insert into artist_words (rowid, name) values (new.id, new.name);
end;
create trigger artist_words_delete after delete on artist begin
  insert into artist_words (artist_words, rowid, name) values ('delete', old.id, old.name);
end;
create trigger artist_words_update after update of name on artist begin
  insert into artist_words (artist_words, rowid, name) values ('delete', old.id, old.name);
  insert into artist_words (rowid, name) values (new.id, new.name);
end;

create virtual table album_words using fts5 (title, content = 'album', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');
insert into album_words (album_words) values ('rebuild');
create trigger album_words_insert after insert on album begin
  insert into album_words (rowid, title) values (new.id, new.title);
end;
create trigger album_words_delete after delete on album begin
  insert into album_words (album_words, rowid, title) values ('delete', old.id, old.title);
end;
create trigger album_words_update after update of title on album begin
  insert into album_words (album_words, rowid, title) values ('delete', old.id, old.title);
  insert into album_words (rowid, title) values (new.id, new.title);
end;

create virtual table track_words using fts5 (name, content = 'track', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');
insert into track_words (track_words) values ('rebuild');
create trigger track_words_insert after insert on track begin
  insert into track_words (rowid, name) values (new.id, new.name);
end;
create trigger track_words_delete after delete on track begin
  insert into track_words (track_words, rowid, name) values ('delete', old.id, old.name);
end;
create trigger track_words_update after update of name on track begin
  insert into track_words (track_words, rowid, name) values ('delete', old.id, old.name);
  insert into track_words (rowid, name) values (new.id, new.name);
end;

