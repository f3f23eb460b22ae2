/* SPDX-License-Identifier: MIT */
/*
 * Names of stripped objects: from the debug file that has the same build ID, where one is
 * installed, else from .gnu_debugdata, which is such a file packed with xz inside the object. Both
 * are ELF files without code; their .symtab is taken as if it were the object's. They help and are
 * not needed: a broken one counts as missing.
 */
#include "attach/object/lines.h"
#include "attach/object/object_private.h"

#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNPACKED_MAX  (128ull << 20)
#define UNPACKING_MAX (256ull << 20) /* memory that xz may need */

/* A file of names: on disk, or in memory. */
struct source {
	int fd;
	const uint8_t *bytes; /* NULL: fd */
	uint64_t size;
};

static int read_source(void *data, uint64_t offset, void *buffer, size_t bytes)
{
	const struct source *source = data;
	uint8_t *to = buffer;

	if (offset > source->size || bytes > source->size - offset)
		return GT_ECUT;
	if (source->bytes != NULL) {
		memcpy(buffer, source->bytes + offset, bytes);
		return 0;
	}
	while (bytes) {
		const ssize_t got = pread(source->fd, to, bytes, (off_t)offset);

		if (got <= 0)
			return GT_EIO;
		to += got;
		offset += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return 0;
}

static bool has_build_id(const struct gt_object *object, struct gt_object *from,
			 const Elf64_Shdr *section)
{
	Elf64_Nhdr note;
	void *loaded;
	bool same;

	if (section->sh_type != SHT_NOTE || section->sh_size < sizeof(note) + 4 ||
	    section->sh_size > 4096 ||
	    gt_object_load(from, section->sh_offset, section->sh_size, "a note", &loaded, NULL))
		return false;
	memcpy(&note, loaded, sizeof(note));
	same = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
	       note.n_descsz == object->build_id_bytes &&
	       section->sh_size >= sizeof(note) + 4 + note.n_descsz &&
	       memcmp((const uint8_t *)loaded + sizeof(note) + 4, object->build_id,
		      note.n_descsz) == 0;
	free(loaded);
	return same;
}

/* Takes the file's .symtab. identified: only if it has the object's build ID. */
static bool take_names(struct gt_object *object, struct source *source, bool identified)
{
	struct gt_object from = {
		.path = object->path, .read = read_source, .read_data = source, .size = source->size
	};
	struct gt_symbol_table *table = &object->tables[0];
	const Elf64_Ehdr *header = &from.header;
	const Elf64_Shdr *symbols = NULL, *strings;
	bool same = !identified, done = false;
	void *loaded;

	if (read_source(source, 0, &from.header, sizeof(from.header)) ||
	    memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
	    header->e_shentsize != sizeof(Elf64_Shdr) || !header->e_shnum ||
	    gt_object_load(&from, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr),
			   "the section header table", &loaded, NULL))
		return false;
	from.section_headers = loaded;
	for (uint32_t i = 0; i < header->e_shnum; i++) {
		const Elf64_Shdr *section = &from.section_headers[i];

		if (section->sh_type == SHT_SYMTAB && section->sh_link < header->e_shnum &&
		    section->sh_entsize == sizeof(Elf64_Sym))
			symbols = section;
		same = same || has_build_id(object, &from, section);
	}
	if (symbols == NULL || !same || symbols->sh_size / sizeof(Elf64_Sym) > UINT32_MAX / 2)
		goto done;
	strings = &from.section_headers[symbols->sh_link];
	if (strings->sh_type != SHT_STRTAB ||
	    gt_object_load(&from, strings->sh_offset, strings->sh_size, "names", &loaded, NULL))
		goto done;
	table->strings = loaded;
	table->string_bytes = strings->sh_size;
	if (gt_object_load(&from, symbols->sh_offset, symbols->sh_size, "symbols", &loaded, NULL)) {
		free(table->strings);
		table->strings = NULL;
		table->string_bytes = 0;
		goto done;
	}
	table->symbols = loaded;
	table->count = (uint32_t)(symbols->sh_size / sizeof(Elf64_Sym));
	done = true;

done:
	free(from.section_headers);
	return done;
}

static bool try_file(struct gt_object *object)
{
	struct source source = { .fd = -1 };
	struct stat status;
	bool done = false;
	char path[4096];

	if (gt_debug_path(object->build_id, object->build_id_bytes, path, sizeof(path)) != 0)
		return false;
	source.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (source.fd < 0)
		return false;
	if (fstat(source.fd, &status) == 0 && S_ISREG(status.st_mode)) {
		source.size = (uint64_t)status.st_size;
		done = take_names(object, &source, true);
	}
	close(source.fd);
	return done;
}

/* The unpacked bytes, the caller's. NULL: not xz, too large, or no memory. */
static uint8_t *unpack(const uint8_t *packed, size_t bytes, size_t *size)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *to = NULL, *grown;
	size_t room = 0;
	lzma_ret got;

	if (lzma_stream_decoder(&stream, UNPACKING_MAX, 0) != LZMA_OK)
		return NULL;
	stream.next_in = packed;
	stream.avail_in = bytes;
	do {
		if (stream.avail_out == 0) {
			const size_t more = room ? room * 2 : bytes * 4 + 4096;

			grown = more <= UNPACKED_MAX ? realloc(to, more) : NULL;
			if (grown == NULL) {
				got = LZMA_MEM_ERROR;
				break;
			}
			to = grown;
			stream.next_out = to + room;
			stream.avail_out = more - room;
			room = more;
		}
		got = lzma_code(&stream, LZMA_FINISH);
	} while (got == LZMA_OK);
	*size = room - stream.avail_out;
	lzma_end(&stream);
	if (got == LZMA_STREAM_END)
		return to;
	free(to);
	return NULL;
}

static void try_inside(struct gt_object *object)
{
	for (uint32_t i = 0; i < object->section_header_count; i++) {
		const Elf64_Shdr *section = &object->section_headers[i];
		struct source source = { .fd = -1 };
		uint8_t *unpacked;
		void *packed;
		size_t size;

		if (section->sh_name >= object->section_names_bytes ||
		    strcmp(object->section_names + section->sh_name, ".gnu_debugdata") != 0 ||
		    section->sh_size > UNPACKED_MAX ||
		    gt_object_load(object, section->sh_offset, section->sh_size, "packed names",
				   &packed, NULL))
			continue;
		unpacked = unpack(packed, section->sh_size, &size);
		free(packed);
		if (unpacked == NULL)
			return;
		source.bytes = unpacked;
		source.size = size;
		take_names(object, &source, false);
		free(unpacked);
		return;
	}
}

void gt_object_load_debug_names(struct gt_object *object)
{
	if (object->tables[0].symbols == NULL && !object->memory && !try_file(object))
		try_inside(object);
}
