"""What freeform KQL may use, by name: statements, operators, functions, aggregates, plugins, and kinds of syntax.

Whatever is not listed is refused, so a construct that a later parser learns is refused until somebody has looked at it.
Listed is what reads the workspace's own rows and computes with them; not listed is what reaches another source or
cluster, runs code, tells about the service or the caller, returns several tables, or changes how the query is run.
"""

from __future__ import annotations

from sentinel_rag.sentinel.kql_guard.analysis import words

STATEMENTS = frozenset({"LetStatement", "ExpressionStatement"})

OPERATORS = {
    "AsOperator": "as",
    "CountOperator": "count",
    "DistinctOperator": "distinct",
    "EvaluateOperator": "evaluate",
    "ExtendOperator": "extend",
    "FilterOperator": "where",
    "FindOperator": "find",
    "GetSchemaOperator": "getschema",
    "InvokeOperator": "invoke",
    "JoinOperator": "join",
    "LookupOperator": "lookup",
    "MakeSeriesOperator": "make-series",
    "MvApplyOperator": "mv-apply",
    "MvExpandOperator": "mv-expand",
    "ParseKvOperator": "parse-kv",
    "ParseOperator": "parse",
    "ParseWhereOperator": "parse-where",
    "PartitionOperator": "partition",
    "PrintOperator": "print",
    "ProjectAwayOperator": "project-away",
    "ProjectKeepOperator": "project-keep",
    "ProjectOperator": "project",
    "ProjectRenameOperator": "project-rename",
    "ProjectReorderOperator": "project-reorder",
    "RangeOperator": "range",
    "ReduceByOperator": "reduce",
    "RenderOperator": "render",
    "SampleDistinctOperator": "sample-distinct",
    "SampleOperator": "sample",
    "ScanOperator": "scan",
    "SearchOperator": "search",
    "SerializeOperator": "serialize",
    "SortOperator": "sort",
    "SummarizeOperator": "summarize",
    "TakeOperator": "take",
    "TopHittersOperator": "top-hitters",
    "TopNestedOperator": "top-nested",
    "TopOperator": "top",
    "UnionOperator": "union",
}
"""Kind in Microsoft's parser -> the word that people write."""

# Words for what is refused most; others are told by their kind.
REFUSED_WORDS = {
    "AliasStatement": "alias",
    "AssertSchemaOperator": "assert-schema",
    "ConsumeOperator": "consume",
    "DataScopeExpression": "datascope",
    "EntityGroup": "entity_group",
    "ExecuteAndCacheOperator": "execute-and-cache",
    "ExternalDataExpression": "externaldata",
    "FacetOperator": "facet",
    "ForkOperator": "fork",
    "GraphMatchOperator": "graph-match",
    "GraphShortestPathsOperator": "graph-shortest-paths",
    "GraphToTableOperator": "graph-to-table",
    "InlineExternalTableExpression": "inline external table",
    "MacroExpandOperator": "macro-expand",
    "MakeGraphOperator": "make-graph",
    "MaterializedViewCombineExpression": "materialized-view-combine",
    "PartitionByOperator": "__partitionby",
    "PatternStatement": "declare pattern",
    "QueryParametersStatement": "declare query_parameters",
    "RestrictStatement": "restrict access",
    "SetOptionStatement": "set",
}

PLUGINS = words("""
    active_users_count activity_counts_metrics activity_engagement activity_metrics autocluster bag_unpack basket
    dcount_intersect diffpatterns funnel_sequence funnel_sequence_completion ipv4_lookup ipv6_lookup narrow
    new_activity_metrics pivot rolling_percentile rows_near sequence_detect session_count sliding_window_counts
    """)

AGGREGATES = words("""
    any anyif arg_max arg_min argmax argmin avg avgif binary_all_and binary_all_or binary_all_xor buildschema count
    count_distinct count_distinctif countif covariance covarianceif covariancep covariancepif dcount dcountif hll hll_if
    hll_merge make_bag make_bag_if make_dictionary make_list make_list_if make_list_with_nulls make_set make_set_if
    makelist makeset max maxif merge_tdigest min minif percentile percentiles percentiles_array percentilesw
    percentilesw_array percentilew stdev stdevif stdevp sum sumif take_any take_anyif tdigest tdigest_merge variance
    varianceif variancep variancepif
    """)

FUNCTIONS = words(
    """
    abs acos ago array_concat array_iff array_iif array_index_of array_length array_reverse array_rotate_left
    array_rotate_right array_shift_left array_shift_right array_slice array_sort_asc array_sort_desc array_split
    array_strcat array_sum arraylength around asin atan atan2 bag_has_key bag_keys bag_merge bag_pack
    bag_pack_columns bag_remove_keys bag_set_key bag_zip base64_decode_toarray base64_decode_toguid
    base64_decode_tostring base64_decodestring base64_encode_fromarray base64_encode_fromguid base64_encode_tostring
    base64_encodestring beta_cdf beta_inv beta_pdf bin bin_at bin_auto binary_and binary_not binary_or
    binary_shift_left binary_shift_right binary_xor bitset_count_ones case ceiling coalesce column_ifexists
    columnifexists convert_angle convert_energy convert_force convert_length convert_mass convert_speed
    convert_temperature convert_volume cos cot countof datepart datetime_add datetime_diff datetime_list_timezones
    datetime_local_to_utc datetime_part datetime_utc_to_local dayofmonth dayofweek dayofyear dcount_hll degrees
    dynamic_to_json endofday endofmonth endofweek endofyear erf erfc estimate_data_size exp exp10 exp2 extract
    extract_all extract_json extractall extractjson floor format_bytes format_datetime format_ipv4 format_ipv4_mask
    format_timespan gamma geo_angle geo_azimuth geo_distance_2points geo_distance_point_to_line
    geo_distance_point_to_polygon geo_geohash_to_central_point geo_h3cell_to_central_point geo_info_from_ip_address
    geo_point_in_circle geo_point_in_polygon geo_point_to_geohash geo_point_to_h3cell geo_point_to_s2cell
    geo_s2cell_to_central_point getmonth gettype getyear gzip_compress_to_base64_string
    gzip_decompress_from_base64_string has_any_index has_any_ipv4 has_any_ipv4_prefix has_ipv4 has_ipv4_prefix hash
    hash_combine hash_many hash_md5 hash_sha1 hash_sha256 hash_xxhash64 hll_isvalid hll_merge hourofday iff iif
    indexof indexof_regex ingestion_time ipv4_compare ipv4_is_in_any_range ipv4_is_in_range ipv4_is_match
    ipv4_is_private ipv4_netmask_suffix ipv4_range_to_cidr_list ipv6_compare ipv6_is_in_any_range ipv6_is_in_range
    ipv6_is_match isascii iscolumnexists isempty isfinite isinf isnan isnotempty isnotnull isnull isutf8
    jaccard_index log log10 log2 loggamma make_datetime make_string make_timespan max_of merge_tdigest min_of
    monthofyear new_guid next not notempty notnull now pack pack_all pack_array pack_dictionary parse_command_line
    parse_csv parse_ipv4 parse_ipv4_mask parse_ipv6 parse_ipv6_mask parse_json parse_path parse_url parse_urlquery
    parse_user_agent parse_version parse_xml parsejson parseurl parseurlquery percentile_tdigest
    percentiles_array_tdigest percentrank_tdigest pi pow prev punycode_domain_from_string punycode_domain_to_string
    punycode_from_string punycode_to_string radians rand range rank_tdigest regex_quote repeat replace replace_regex
    replace_string replace_strings reverse round row_cumsum row_number row_rank row_rank_dense row_rank_min
    row_window_session series_abs series_acos series_add series_asin series_atan series_ceiling series_cos
    series_cosine_similarity series_decompose series_decompose_anomalies series_decompose_forecast series_divide
    series_dot_product series_equals series_exp series_fft series_fill_backward series_fill_const
    series_fill_forward series_fill_linear series_fir series_fit_2lines series_fit_2lines_dynamic series_fit_line
    series_fit_line_dynamic series_fit_poly series_floor series_greater series_greater_equals series_ifft series_iir
    series_less series_less_equals series_log series_magnitude series_multiply series_not_equals series_outliers
    series_pearson_correlation series_periods_detect series_periods_validate series_pow series_product
    series_seasonal series_sign series_sin series_stats series_stats_dynamic series_subtract series_sum series_tan
    set_difference set_equals set_has_element set_intersect set_union sign sin split sqrt startofday startofmonth
    startofweek startofyear strcat strcat_array strcat_delim strcmp string_size strlen strrep substring table tan
    tdigest_isvalid tdigest_merge to_utf8 tobool toboolean todatetime todecimal todouble todynamic toguid tohex
    toint tolong tolower toobject toreal tostring totime totimespan toupper translate treepath trim trim_end
    trim_start unicode_codepoints_from_string unicode_codepoints_to_string unixtime_microseconds_todatetime
    unixtime_milliseconds_todatetime unixtime_nanoseconds_todatetime unixtime_seconds_todatetime url_decode
    url_encode url_encode_component week_of_year weekofyear welch_test zip zlib_compress_to_base64_string
    zlib_decompress_from_base64_string
    """
)
"""Scalar functions, and `table`, whose argument must be a literal (`rules` sees to it)."""

_COMPARISONS = """
    Add And BangTilde Between ContainsCs Contains Divide EndsWithCs EndsWith Equal EqualTilde GreaterThan
    GreaterThanOrEqual HasAll HasAny HasCs Has HasPrefixCs HasPrefix HasSuffixCs HasSuffix InCs In LessThan
    LessThanOrEqual MatchesRegex Modulo Multiply NotBetween NotContainsCs NotContains NotEndsWithCs NotEndsWith NotEqual
    NotHasCs NotHas NotHasPrefixCs NotHasPrefix NotHasSuffixCs NotHasSuffix NotInCs NotIn NotStartsWithCs NotStartsWith
    Or Search StartsWithCs StartsWith Subtract UnaryMinus UnaryPlus
    """

SYNTAX = (
    STATEMENTS
    | OPERATORS.keys()
    | {f"{name}Expression" for name in words(_COMPARISONS)}
    | words("""
        BooleanLiteralExpression CompoundStringLiteralExpression DateTimeLiteralExpression DecimalLiteralExpression
        GuidLiteralExpression IntLiteralExpression LongLiteralExpression NullLiteralExpression RealLiteralExpression
        StringLiteralExpression TimespanLiteralExpression TokenLiteralExpression TypeOfLiteralExpression
        DynamicExpression JsonArrayExpression JsonObjectExpression JsonPair

        AtExpression BracketedExpression BracketedName CompoundNamedExpression DataTableExpression ElementExpression
        ExpressionCouple ExpressionList FunctionCallExpression MaterializeExpression NameDeclaration NameReference
        NamedParameter ParenthesizedExpression PathExpression PipeExpression SimpleNamedExpression StarExpression
        ToScalarExpression ToTableExpression TokenName TypedColumnReference WildcardedName BracketedWildcardedName
        PackExpression

        CountAsIdentifierClause DefaultExpressionClause EvaluateRowSchema EvaluateSchemaClause FindInClause
        FindProjectClause JoinOnClause JoinWhereClause MakeSeriesByClause MakeSeriesExpression MakeSeriesFromClause
        MakeSeriesFromToStepClause MakeSeriesInRangeClause MakeSeriesOnClause MakeSeriesStepClause MakeSeriesToClause
        MvApplyExpression MvApplyRowLimitClause MvApplySubqueryExpression MvExpandExpression MvExpandRowLimitClause
        NameAndTypeDeclaration NameEqualsClause NameReferenceList OrderedExpression OrderingClause OrderingNullsClause
        ParseKvWithClause PartitionQuery PartitionSubquery PrimitiveTypeExpression ReduceByWithClause RenameList
        RenderWithClause RowSchema ScanAssignment ScanComputationClause ScanDeclareClause ScanOrderByClause
        ScanPartitionByClause ScanStep ScanStepOutput SchemaTypeExpression SummarizeByClause ToTypeOfClause
        TopHittersByClause TopNestedClause TopNestedWithOthersClause

        DefaultValueDeclaration FunctionBody FunctionDeclaration FunctionParameter FunctionParameters
        List QueryBlock SeparatedElement SkippedTokens
        """)
)
"""Every kind of syntax that may stand anywhere in a query. SkippedTokens come with an error of the parser itself."""
