/* SPDX-License-Identifier: MIT */
/* Flame graphs: see flame.h. */
#include "export/flame.h"

#include <inttypes.h>
#include <stdio.h>

#define WIDTH	  1200.0
#define ROW	  18
#define HEAD	  40
#define NARROWEST 0.1
#define LETTER	  6.6 /* approximate width of a letter */

static const char script[] =
	"<script><![CDATA[\n"
	"const frames=[...document.querySelectorAll('g.f')].map(g=>({g,r:g.querySelector('rect'),"
	"t:g.querySelector('text'),x:+g.dataset.x,w:+g.dataset.w,d:+g.dataset.d}));\n"
	"function zoom(x,w,d){for(const f of frames){const "
	"up=f.d<d&&f.x<=x+1e-6&&f.x+f.w>=x+w-1e-6;"
	"const inside=f.x>=x-1e-6&&f.x+f.w<=x+w+1e-6;f.g.style.display=up||inside?'':'none';"
	"if(!(up||inside))continue;const nx=up?0:(f.x-x)/w*1200,nw=up?1200:f.w/w*1200;"
	"f.r.setAttribute('x',nx);f.r.setAttribute('width',Math.max(nw-.5,.1));"
	"f.g.style.opacity=up?.6:1;f.t.setAttribute('x',nx+3);const "
	"n=f.g.dataset.n,k=Math.floor((nw-6)/6.6);"
	"f.t.textContent=k>=n.length?n:k>2?n.slice(0,k-1)+'\\u2026':'';}}\n"
	"for(const f of frames)f.g.addEventListener('click',()=>zoom(f.x,f.w,f.d));\n"
	"document.getElementById('all').addEventListener('click',()=>zoom(0,1200,0));\n"
	"]]></script>\n";

void gt_flame_time(char text[32], uint64_t ns)
{
	if (ns < 1000)
		snprintf(text, 32, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(text, 32, "%.3g us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(text, 32, "%.3g ms", (double)ns / 1e6);
	else
		snprintf(text, 32, "%.4g s", (double)ns / 1e9);
}

/* Writes as many letters as fit, cut with an ellipsis, never within a UTF-8 character. */
static void label(struct gt_out *out, const char *name, double width)
{
	size_t fit = width > 6 ? (size_t)((width - 6) / LETTER) : 0, count = 0;
	char text[256];

	if (fit < 3)
		return;
	while (name[count] != '\0' && count < fit && count < sizeof(text) - 4) {
		unsigned length = gt_utf8_length(name + count);

		count += length ? length : 1;
	}
	snprintf(text, sizeof(text), "%.*s%s", (int)count, name, name[count] ? "\xe2\x80\xa6" : "");
	gt_out_xml(out, text);
}

static void draw(const struct gt_flame *flame, struct gt_out *out, uint32_t at, double x,
		 double width, uint32_t deepest)
{
	const struct gt_tree_node *node = &flame->tree->nodes[at];
	const char *name = flame->name(flame->user, at);
	unsigned y = HEAD + (deepest - node->depth) * ROW, color[3];
	char words[GT_FLAME_WORDS];

	flame->words(flame->user, at, words);
	flame->color(flame->user, at, color);
	gt_out_printf(out,
		      "<g class=\"f\" data-x=\"%.3f\" data-w=\"%.3f\" data-d=\"%" PRIu32
		      "\" data-n=\"",
		      x, width, node->depth);
	gt_out_xml(out, name);
	gt_out_text(out, "\"><title>");
	gt_out_xml(out, name);
	gt_out_printf(out, "\n%s</title>", words);
	gt_out_printf(out,
		      "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%u\" rx=\"2\" "
		      "fill=\"rgb(%u,%u,%u)\"/><text x=\"%.2f\" y=\"%u\">",
		      x, y, width > 0.6 ? width - 0.5 : width, ROW - 1, color[0], color[1],
		      color[2], x + 3, y + 13);
	label(out, name, width);
	gt_out_text(out, "</text></g>\n");
}

int gt_flame_write(const struct gt_flame *flame, struct gt_out *out)
{
	const struct gt_tree *tree = flame->tree;
	double place[GT_TREE_DEPTH_MAX + 2] = { 0 }; /* by depth: where the next frame begins */
	uint32_t deepest = 0;

	double all = (double)tree->nodes[0].total, unit = all > 0 ? WIDTH / all : 0;
	for (uint32_t i = 1; i < tree->count; i++)
		if ((double)tree->nodes[i].total * unit >= NARROWEST &&
		    tree->nodes[i].depth > deepest)
			deepest = tree->nodes[i].depth;
	gt_out_printf(out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 %u\" "
		      "width=\"1200\" height=\"%u\" font-family=\"monospace\" font-size=\"11\">\n"
		      "<style>rect{cursor:pointer}rect:hover{stroke:#000;stroke-width:.5}"
		      "text{pointer-events:none}</style>\n"
		      "<rect id=\"all\" width=\"1200\" height=\"%u\" fill=\"#fdf6e3\"/>\n"
		      "<text x=\"600\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">",
		      HEAD + (deepest + 1) * ROW, HEAD + (deepest + 1) * ROW,
		      HEAD + (deepest + 1) * ROW);
	gt_out_xml(out, flame->title);
	gt_out_text(out, "</text>\n");
	for (uint32_t at = tree->nodes[0].child; at != 0;) {
		const struct gt_tree_node *node = &tree->nodes[at];
		double width = (double)node->total * unit, x = place[node->depth];

		place[node->depth] = x + width;
		place[node->depth + 1] = x;
		if (width >= NARROWEST)
			draw(flame, out, at, x, width, deepest);
		/* Goes down into a node that is wide enough to be seen, else to the next one. */
		if (width >= NARROWEST && node->child != 0) {
			at = node->child;
			continue;
		}
		while (at != 0 && tree->nodes[at].sibling == 0)
			at = tree->nodes[at].parent;
		at = at != 0 ? tree->nodes[at].sibling : 0;
	}
	gt_out_text(out, script);
	gt_out_text(out, "</svg>\n");
	return out->error ? GT_EIO : 0;
}
