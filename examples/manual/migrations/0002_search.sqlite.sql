-- The words of the documents. The triggers keep the index as the table is.

create virtual table words using fts5 (folder unindexed, slug unindexed, title, body, tokenize = 'unicode61 remove_diacritics 2');

insert into words (folder, slug, title, body) select folder, slug, title, body from docs;

create trigger words_insert after insert on docs begin
  insert into words (folder, slug, title, body) values (new.folder, new.slug, new.title, new.body);
end;

create trigger words_delete after delete on docs begin
  delete from words where folder = old.folder and slug = old.slug;
end;

create trigger words_update after update on docs begin
  delete from words where folder = old.folder and slug = old.slug;
  insert into words (folder, slug, title, body) values (new.folder, new.slug, new.title, new.body);
end;
