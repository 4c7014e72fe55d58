-- The words of the posts. The triggers keep the index as the table is.

create virtual table words using fts5 (slug unindexed, title, body, tokenize = 'unicode61 remove_diacritics 2');

create trigger words_insert after insert on posts begin
  insert into words (slug, title, body) values (new.slug, new.title, new.body);
end;

create trigger words_delete after delete on posts begin
  delete from words where slug = old.slug;
end;

create trigger words_update after update on posts begin
  delete from words where slug = old.slug;
  insert into words (slug, title, body) values (new.slug, new.title, new.body);
end;
