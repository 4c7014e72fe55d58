-- A picture of the cover: the address of a file that an editor has sent. An album without one has a drawing.
alter table album add column cover text;
