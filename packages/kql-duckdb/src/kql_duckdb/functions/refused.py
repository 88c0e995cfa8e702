"""Functions and plugins of KQL that this engine refuses by name, each with the reason that a query is told.

A name that is here is known: it gets its reason, and no "did you mean". Whatever is in none of the tables is unknown.
"""

from __future__ import annotations

_WHY = {
    "the geometry of the sphere that it needs is not here": """geo_angle geo_closest_point_on_line
        geo_closest_point_on_polygon geo_distance_point_to_polygon geo_from_wkt geo_geohash_neighbors
        geo_h3cell_children geo_h3cell_level geo_h3cell_neighbors geo_h3cell_parent geo_h3cell_rings
        geo_h3cell_to_central_point geo_h3cell_to_polygon geo_intersection_2lines geo_intersection_2polygons
        geo_intersection_line_with_polygon geo_intersects_2lines geo_intersects_2polygons
        geo_intersects_line_with_polygon geo_line_buffer geo_line_centroid geo_line_densify geo_line_interpolate_point
        geo_line_locate_point geo_line_simplify geo_line_to_s2cells geo_point_buffer geo_point_to_h3cell
        geo_point_to_s2cell geo_polygon_area geo_polygon_buffer geo_polygon_centroid geo_polygon_densify
        geo_polygon_simplify geo_polygon_to_h3cells geo_polygon_to_s2cells geo_s2cell_neighbors
        geo_s2cell_to_central_point geo_s2cell_to_polygon geo_simplify_polygons_array geo_union_lines_array
        geo_union_polygons_array""",
    "its answer is a sketch whose form is Azure's own": """merge_tdigest percentile_tdigest percentiles_array_tdigest
        percentrank_tdigest rank_tdigest tdigest tdigest_merge tdigest_isvalid hll_isvalid""",
    "Kusto's pages leave the algorithm or its edges open": """series_decompose series_decompose_anomalies
        series_decompose_forecast series_fit_2lines series_fit_2lines_dynamic series_fit_poly series_outliers
        series_periods_detect series_periods_validate series_seasonal estimate_data_size buildschema bin_auto row_rank
        hash_combine hash_many""",
    "there is no cluster here to ask": """current_principal_details current_principal_is_member_of cursor_after
        cursor_before_or_at cursor_current current_cursor current_node_id extent_id extentid extent_tags row_id
        rowstore_ordinal_range""",
    "graphs are not read here": "all map inner_nodes node_id node_degree_in node_degree_out labels",
}

FUNCTIONS: dict[str, str] = {name: why for why, names in _WHY.items() for name in names.split()}

_PLUGINS = {
    "it reaches outside of this database": """azure_digital_twins_query_request cosmosdb_sql_request
        execute_show_command execute_query external_datatable http_request http_request_post infer_storage_schema
        infer_storage_schema_with_suggestions sql_request mysql_request postgresql_request dax_request ai_embed_text
        ai_chat_completion ai_chat_completion_prompt ai_embeddings""",
    "it runs a program": "csharp python r",
    "Kusto's pages leave the algorithm open": "autocluster basket diffpatterns",
    "it is not built here": """active_users_count activity_engagement activity_metrics dcount_intersect
        estimate_rows_count funnel_sequence funnel_sequence_completion geo_polygon_lookup geo_line_lookup identity
        identity_v3 new_activity_metrics preview rolling_percentile rows_near session_count sequence_detect
        sliding_window_counts""",
}

PLUGINS_RUN = ("activity_counts_metrics", "bag_unpack", "ipv4_lookup", "ipv6_lookup", "narrow", "pivot")
"""The plugins that `binder` runs."""

PLUGINS: dict[str, str] = {name: why for why, names in _PLUGINS.items() for name in names.split()}
